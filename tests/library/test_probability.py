"""Inference in models whose posteriors are known."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay import prob

DATA = np.float32([1.0, 2.5, 0.5, 2.0])
VARIANCE = 1 / (1 / 4 + len(DATA))  # of the mean of numbers of variance 1, which has variance 4 before
MEAN = VARIANCE * float(DATA.sum())


@relay.relay
def unknown_mean(sample, observe, q, data):  # type: ignore[no-untyped-def]
    mean = sample(q, prob.Normal(0.0, 2.0))
    observe(prob.Normal(mean, 1.0), data)


def test_densities() -> None:
    x = np.float32([0.3, 2.0])
    normal = relay.relay(lambda x: prob.Normal(1.0, 2.0).log_density(x))
    np.testing.assert_allclose(normal.interpret(x), -((x - 1) ** 2) / 8 - np.log(2 * np.sqrt(2 * np.pi)), rtol=1e-6)
    exponential = relay.relay(lambda x: prob.Exponential(2.0).log_density(x))
    np.testing.assert_allclose(exponential.interpret(np.float32([0.5, -1])), [np.log(2) - 1, -1e30], rtol=1e-6)
    mixture = relay.relay(lambda x, m: prob.NormalMixture(m * 0.0, m, 2.0).log_density(x))
    same = mixture.interpret(x, np.float32([1.0, 1.0]))
    np.testing.assert_allclose(same, normal.interpret(x), rtol=1e-6)


def test_hamiltonian_samples_have_the_posteriors_moments() -> None:
    """2000 samples, of which neighbors are nearly independent: 4 standard errors of the mean are 0.045."""
    samples, accepted = prob.hmc(unknown_mean, relay.random.key(1), np.float32(0), DATA, 2000, 0.35, 4)
    found = np.array([float(s) for s in samples])
    assert accepted > 0.8
    assert found.mean() == pytest.approx(MEAN, abs=0.06)
    assert found.std() == pytest.approx(VARIANCE**0.5, rel=0.1)


def test_gradients_of_the_bound_agree() -> None:
    """Both estimators of the gradient at one guide, over many draws; of the mean it is known."""
    guide = (np.float32(0.5), np.float32(-0.5))
    exact = (MEAN - 0.5) / VARIANCE
    keys = relay.random.split(relay.random.key(0), 4000)

    def gradients(bound):  # type: ignore[no-untyped-def]
        slope = relay.relay(lambda key: relay.grad(bound, wrt="guide")(guide, unknown_mean, key, DATA))
        return [np.asarray(g, np.float64) for g in relay.vmap(slope)(keys)]

    through, score = gradients(prob.reparametrized_bound), gradients(prob.score_bound)
    for found in (through, score):
        assert found[0].mean() == pytest.approx(exact, abs=float(5 * found[0].std() / len(keys) ** 0.5))
    assert through[0].std() < score[0].std()
    error = 5 * (through[1].var() + score[1].var()) ** 0.5 / len(keys) ** 0.5
    assert through[1].mean() == pytest.approx(score[1].mean(), abs=float(error))


def test_importance_weights_correct_the_guide() -> None:
    draws, log_weights = prob.importance(
        unknown_mean, relay.random.key(2), np.float32(1.0), np.float32(0.0), DATA, 2000
    )
    weights = np.asarray(relay.softmax(log_weights))
    found = float((weights * np.array([float(d) for d in draws])).sum())
    assert found == pytest.approx(MEAN, abs=0.08)
    assert 200 < prob.effective_size(log_weights) < 2000
