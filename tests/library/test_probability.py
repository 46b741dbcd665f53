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


def test_the_sampler_without_u_turns_has_the_posteriors_moments() -> None:
    """1500 samples, of which every third is as good as independent: 4 standard errors of the mean are 0.09."""
    start = np.float32(0)
    few = prob.nuts.interpret(unknown_mean, relay.random.key(3), start, DATA, 3, 0.3, 2)
    samples, acceptance, step = prob.nuts(unknown_mean, relay.random.key(3), start, DATA, 1500, 0.05, 200)
    again = prob.nuts(unknown_mean, relay.random.key(3), start, DATA, 3, 0.3, 2)
    np.testing.assert_allclose(np.array(again[0], np.float32), np.array(few[0], np.float32), rtol=1e-4)
    np.testing.assert_allclose(again[2], few[2], rtol=1e-4)
    found = np.array([float(s) for s in samples])
    assert found.mean() == pytest.approx(MEAN, abs=0.09)
    assert found.std() == pytest.approx(VARIANCE**0.5, rel=0.12)
    assert 0.65 < acceptance < 0.97 and step > 0.2  # which has grown from 0.05


def test_diagnostics_of_chains_whose_autocorrelation_is_known() -> None:
    """x' = 0.8 x + noise is worth (1 - 0.8) / (1 + 0.8) of its samples."""
    random = np.random.default_rng(0)
    noise = random.normal(size=(4, 3000))
    chains = np.zeros((4, 3000), np.float32)
    for i in range(1, 3000):
        chains[:, i] = 0.8 * chains[:, i - 1] + noise[:, i]
    white = random.normal(size=(4, 500)).astype(np.float32)
    assert prob.effective_sample_size.interpret(chains) == pytest.approx(12000 / 9, rel=0.25)
    assert prob.effective_sample_size.interpret(white) == pytest.approx(2000, rel=0.15)
    apart = white + np.float32([[0], [0], [0], [2]])
    drifting = white + np.linspace(-1, 1, 500, dtype=np.float32)
    assert prob.split_r_hat.interpret(white) == pytest.approx(1, abs=0.01)
    assert prob.split_r_hat.interpret(apart) > 1.2 and prob.split_r_hat.interpret(drifting) > 1.1


def test_discrete_unknowns_are_summed_out() -> None:
    @relay.relay
    def coins(sample, observe, unknowns, data):  # type: ignore[no-untyped-def]
        shift, z = unknowns
        sample(z, prob.Categorical(np.log(np.float32([0.2, 0.3, 0.5]))))
        observe(prob.Normal(z + sample(shift, prob.Normal(0.0, 1.0)), 1.0), data)

    values, q = np.arange(3).astype(np.int32), 0.25

    def density(x, mean):  # type: ignore[no-untyped-def]
        return np.exp(-((x - mean) ** 2) / 2) / np.sqrt(2 * np.pi)

    parts = density(q, 0) * np.array([0.2, 0.3, 0.5]) * density(1.5, values + q)
    found = prob.log_marginal.interpret(coins, np.float32(q), values, np.float32(1.5))
    assert found == pytest.approx(np.log(parts.sum()), rel=1e-5)
    posterior = prob.log_posterior.interpret(coins, np.float32(q), values, np.float32(1.5))
    np.testing.assert_allclose(np.exp(posterior), parts / parts.sum(), rtol=1e-5)

    @relay.relay
    def moves(key, q):  # type: ignore[no-untyped-def]
        return prob.hmc(prob.enumerated(coins, values), key, q, 1.5, 2, 0.1, 2)

    _, accepted = moves.interpret(relay.random.key(0), np.float32(q))
    assert accepted == 1
    slope = relay.grad(prob.log_joint, wrt="q").interpret(
        prob.enumerated(coins, values), np.float32(q), np.float32(1.5)
    )
    expected = (parts * (1.5 - values - 2 * q)).sum() / parts.sum()
    assert slope == pytest.approx(expected, rel=1e-4)


@relay.relay
def mixed(sample, observe, unknowns, data):  # type: ignore[no-untyped-def]
    mean, groups = unknowns
    sample(groups["first"], prob.Categorical(np.log(np.float32([0.3, 0.7]))))
    sample(groups["second"], prob.Categorical(np.zeros(3, np.float32)))
    mean = sample(mean, prob.Normal(0.0, 2.0))
    observe(prob.Normal(np.float32([-1.0, 1.0])[groups["first"]], 1.0), data)
    observe(prob.Normal(mean, 1.0), DATA)
    observe(prob.Normal(np.float32([0.0, 1.0, 2.0])[groups["second"]], 1.0), np.float32(0.5))


def test_discrete_unknowns_have_guides_fitted_by_the_score_function() -> None:
    """The posterior is a product, so it is the best guide. The draws leave a noise of about 0.01."""
    data = np.float32([-1.5, -0.6, 0.1, 1.2])
    weights = {"first": np.zeros((4, 2), np.float32), "second": np.zeros(3, np.float32)}
    guide = (np.float32(0), np.float32(0), weights)
    mean, log_deviation, weights = prob.fit_normal(
        prob.mixed_bound, mixed, relay.random.key(2), guide, data, 1000, 0.05, 16
    )
    assert float(mean) == pytest.approx(MEAN, abs=0.06)
    assert np.exp(float(log_deviation)) == pytest.approx(VARIANCE**0.5, rel=0.1)
    exact = 1 / (1 + 3 / 7 * np.exp(-2 * data))
    np.testing.assert_allclose(np.exp(relay.log_softmax(weights["first"]))[:, 1], exact, atol=0.05)
    second = np.exp(-0.5 * (np.array([0.0, 1.0, 2.0]) - 0.5) ** 2)
    np.testing.assert_allclose(np.exp(relay.log_softmax(weights["second"])), second / second.sum(), atol=0.05)


def test_the_mixed_bounds_value_is_the_bound_and_interpreted_gradients_agree() -> None:
    weights = {"first": np.float32([[0.1, -0.2]] * 2), "second": np.float32([0.3, 0.0, -0.1])}
    guide = (np.float32(0.2), np.float32(-0.5), weights)
    data, key = np.float32([-1.5, 0.1]), relay.random.key(3)
    bounds = [float(prob.mixed_bound(guide, mixed, relay.random.key(i), data)) for i in range(200)]
    evidence = _log_evidence(data)
    assert np.mean(bounds) < evidence + 4 * np.std(bounds) / np.sqrt(len(bounds))
    slope = relay.grad(prob.mixed_bound, wrt="guide")
    for a, b in zip(
        relay.tree.leaves(slope(guide, mixed, key, data)),
        relay.tree.leaves(slope.interpret(guide, mixed, key, data)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def _log_evidence(data: np.ndarray) -> float:
    def normal(x: np.ndarray, variance: float = 1.0) -> np.ndarray:
        return np.exp(-0.5 * x * x / variance) / np.sqrt(2 * np.pi * variance)

    first = (0.3 * normal(data + 1) + 0.7 * normal(data - 1)).prod()
    second = normal(0.5 - np.arange(3)).mean()
    cov = np.eye(len(DATA)) + 4.0
    mean = np.exp(-0.5 * DATA @ np.linalg.solve(cov, DATA)) / np.sqrt(np.linalg.det(2 * np.pi * cov))
    return float(np.log(first * second * mean))
