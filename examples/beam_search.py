"""Beam search: read a text from the telephone keys on which it was typed.

    python examples/beam_search.py [TEXT ..]

On a telephone the keys 4663 mean "good", but "home", "gone" and "hood" as well. Which text is the most likely? Beam
search keeps, of all the texts that fit the keys so far, the few with the best scores. The score is the probability of
each letter after the three before it, counted in the manual that every Python has, `pydoc_data.topics`.
"""

import re
import sys
from pydoc_data.topics import topics

import numpy as np

from relay import relay

LETTERS = " abcdefghijklmnopqrstuvwxyz"
KEYS = [" ", "", "abc", "def", "ghi", "jkl", "mno", "pqrs", "tuv", "wxyz"]
ON_KEY = np.array([[letter in key for letter in LETTERS] for key in KEYS])  # (10, 27)


@relay
def decode(log_probability, keys, width):
    """The letters of the most likely text, and its log-probability.

    log_probability: (27, 27, 27, 27), of the fourth letter after the first three; keys: (n,) integers.
    """
    beams = [(0.0, [0, 0, 0])]
    for key in keys:
        candidates = []
        for score, text in beams:
            for letter in range(27):
                if ON_KEY[key, letter]:
                    change = log_probability[text[-3], text[-2], text[-1], letter]
                    candidates.append((score + change, text + [letter]))
        beams = sorted(candidates, key=lambda beam: beam[0], reverse=True)[:width]
    score, text = beams[0]
    return text[3:], score


def letter_table():
    """Logarithms of the letters' probabilities, (27, 27, 27, 27), from Python's manual."""
    text = re.sub("[^a-z]+", " ", " ".join(topics.values()).lower())
    letters = np.array([LETTERS.index(c) for c in text])
    counts = np.full((27, 27, 27, 27), 0.001)
    np.add.at(counts, (letters[:-3], letters[1:-2], letters[2:-1], letters[3:]), 1)
    return np.log(counts / counts.sum(axis=-1, keepdims=True))


def main(*texts):
    table = letter_table()
    for text in texts or ["the gradient of a program is a program"]:
        keys = np.array([ON_KEY[:, LETTERS.index(letter)].argmax() for letter in text.lower()])
        print("keys    ", "".join(map(str, keys)))
        for width in (1, 30):
            letters, score = decode(table, keys, width)
            print(f"width {width:2}", "".join(LETTERS[i] for i in letters), f"({float(score):.1f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
