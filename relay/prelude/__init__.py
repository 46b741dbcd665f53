"""Data types that programs share, written in the language itself: `relay.List`, `relay.Option`, `relay.Tree`.

    List[A]    Nil | Cons(head, tail)           Option[A]    Nothing | Some(value)
    Tree[A]    Leaf(value) | Node(left, right)

Their operations are methods: `xs.map(f)`, `tree.fold(leaf, node)`.
"""

from relay.prelude.lists import List, from_sequence, to_sequence
from relay.prelude.options import Option
from relay.prelude.trees import Tree

__all__ = ["List", "Option", "Tree", "from_sequence", "to_sequence"]
