#!/usr/bin/env python3
"""braid.nn: modules of Python, layers against their formulas."""
import unittest

import braid


class Modules(unittest.TestCase):
    class Net(braid.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = [braid.nn.Linear(4, 8, bias=True, key=1), braid.nn.Linear(8, 4, key=2)]
            self.scale = braid.nn.parameter(braid.ones((4,)))
            self.named = {"norm": braid.nn.RMSNorm(4)}
            self.width = 4

        def __call__(self, x):
            return self.named["norm"](self.blocks[1](braid.tanh(self.blocks[0](x)))) * self.scale

    def test_parameters_are_found_among_attributes(self):
        net = self.Net()
        self.assertEqual(list(net.parameters()), ["blocks.0.weight", "blocks.0.bias", "blocks.1.weight", "scale",
                                                  "named.norm.weight"])
        self.assertEqual(net.count(), 32 + 8 + 32 + 4 + 4)

    def test_a_module_learns_and_is_saved(self):
        import os
        import tempfile

        net = self.Net()
        x = braid.randn((32, 4), 7)
        target = braid.sin(x)
        optimizer = braid.nn.Optimizer(net, "adamw", lr=1e-2, weight_decay=0.0)
        losses = []
        for _ in range(60):
            loss = braid.mse_loss(net(x), target)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.6 * losses[0])
        self.assertEqual(optimizer.steps, 60)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            net.save(path)
            other = self.Net()
            other.load(path)
            self.assertEqual(other(x).tolist(), net(x).tolist())
            with self.assertRaises(braid.InputError):
                braid.nn.Linear(4, 8).load(path)

    def test_a_module_changes_its_type(self):
        net = self.Net()
        net.to(braid.float64)
        self.assertEqual(net.scale.dtype, braid.float64)
        net.freeze()
        self.assertEqual(net.scale.requires_grad, False)
        self.assertEqual(list(net.buffers()), ["scale"])

    def test_a_child_may_know_its_parent(self):
        net = self.Net()
        net.child = braid.nn.Module()
        net.child.parent, net.child.bias = net, braid.nn.parameter(braid.ones(2))
        self.assertEqual(list(net.parameters()), [*self.Net().parameters(), "child.bias"])
        self.assertEqual(list(net.child.parameters())[0], "parent.blocks.0.weight")

    def test_a_parameter_that_would_not_be_found_is_refused(self):
        class Scaled(braid.nn.Linear):
            def __init__(self):
                super().__init__(4, 4)
                self.rate = 2
                self.scale = braid.nn.parameter(braid.ones(4))

        class Early(braid.nn.Module):
            def __init__(self):
                self.width = 4
                self.part = braid.nn.Linear(4, 4)

        for kind, words in ((Scaled, "a class derived from Module"), (Early, r"after super\(\).__init__\(\)")):
            with self.assertRaisesRegex(AttributeError, words):
                kind()
        with self.assertRaisesRegex(braid.MisuseError, "expected a module, or a dict of tensors"):
            braid.nn.Optimizer([braid.ones(2)])

    def test_composed_attention_is_that_of_the_op(self):
        layer = braid.nn.Attention(16, 4, key=3)
        x = braid.randn((2, 5, 16), 1)
        self.assertEqual(layer(x).shape, (2, 5, 16))
        self.assertIn("dyn_w_proj.qkw", " ".join(layer.parameters()))
        plain = braid.nn.Attention(16, 4, compose=False, key=3)
        self.assertNotIn("dyn_w_proj", " ".join(plain.parameters()))


class Layers(unittest.TestCase):
    def close(self, x, y, tolerance=1e-5):
        self.assertEqual(x.shape, y.shape)
        self.assertLess(braid.max(braid.abs(x - y)).item(), tolerance)

    def test_the_maps_of_composed_attention_give_its_output(self):
        x = braid.randn((2, 6, 16), 1)
        for rope in (None, braid.nn.Rope(4, 32)):
            layer = braid.nn.Attention(16, 4, key=3)
            maps = layer.maps(x, rope)
            heads = maps["attn_probs_composed"] @ braid.permute(maps["v"], (0, 2, 1, 3))
            y = braid.reshape(braid.permute(heads, (0, 2, 1, 3)), (2, 6, 16)) @ layer.parameters()["wo.weight"].T
            self.close(layer(x, rope), y)
            self.assertGreater(braid.max(braid.abs(maps["attn_probs_composed"] - maps["attn_probs"])).item(), 1e-6)

    def test_a_composition_of_ones_own(self):
        x = braid.randn((1, 5, 16), 1)
        plain = braid.nn.Attention(16, 4, compose=False, key=3)
        doubled = braid.nn.Attention(16, 4, compose=False, compose_scores=lambda s: s * 2, key=3)
        self.assertEqual(braid.nn.Attention(16, 4, compose=False, compose_scores=lambda s: s * 1, key=3)(x).shape,
                         plain(x).shape)
        scores, twice = plain.maps(x)["attn_scores"], doubled.maps(x)["attn_scores_composed"]
        self.close(braid.tril(scores) * 2, braid.tril(twice))
        start = braid.nn.Attention(16, 4, identity_start=True, key=3)
        self.assertEqual(start(x).tolist(), plain(x).tolist())

    def test_a_rotation_keeps_products_of_equal_distance(self):
        rope = braid.nn.Rope(8, 64)
        q, k = braid.randn((1, 1, 1, 8), 1), braid.randn((1, 1, 1, 8), 2)
        products = [braid.sum(rope(q, 5 + i) * rope(k, 2 + i)).item() for i in (0, 11)]
        self.assertAlmostEqual(*products, 5)
        self.close(rope(q), q, 1e-6)

    def test_layers_of_transformers(self):
        x, states = braid.randn((2, 5, 8), 1), braid.randn((2, 3, 8), 2)
        mlp = braid.nn.MLP(8, 12, key=1)
        w = mlp.parameters()
        self.close(mlp(x), (braid.silu(x @ w["w1.weight"].T) * (x @ w["w3.weight"].T)) @ w["w2.weight"].T)
        encoder = braid.nn.TransformerEncoderLayer(8, 2, dropout=0.5, key=1)
        self.assertEqual(encoder(x).tolist(), encoder(x).tolist())
        self.assertNotEqual(encoder(x, train=True, key=1).tolist(), encoder(x, train=True, key=2).tolist())
        first = encoder(x[:, :3], causal=True)
        self.close(encoder(x, causal=True)[:, :3], first)
        decoder = braid.nn.TransformerDecoderLayer(8, 2, key=1)
        self.assertEqual(decoder(x, states).shape, (2, 5, 8))
        cross = braid.nn.CrossAttention(8, 2, key=1)
        self.close(cross(x, states, [3, 2])[1:], cross(x[1:], states[1:, :2]))
        positions = braid.nn.LearnedPositions(10, 8, key=1)
        self.close(positions(x), x + positions.parameters()["weight"][:5])
        self.assertEqual(braid.nn.sinusoidal_positions(3, 4)[0].tolist(), [0, 1, 0, 1])


class Options(unittest.TestCase):
    def test_documents_are_calls_of_their_own(self):
        q, k, v = (braid.randn((1, 5, 2, 4), key, braid.float64) for key in (1, 2, 3))
        documents = braid.documents_of(braid.tensor([[0, 1, 0, 1, 2]]))
        self.assertEqual([(d.sample, d.begin, d.end) for d in documents], [(0, 0, 2), (0, 2, 5)])
        whole = braid.scaled_dot_product_attention(q, k, v, documents=documents)
        apart = [braid.scaled_dot_product_attention(q[:, a:b], k[:, a:b], v[:, a:b]) for a, b in ((0, 2), (2, 5))]
        self.assertTrue(braid.allclose(whole, braid.concat(apart, 1)))
        self.assertFalse(braid.allclose(whole, braid.scaled_dot_product_attention(q, k, v)))

    def test_an_empty_handle_is_none(self):
        x = braid.randn((2, 3), 1, braid.float64)
        ones = braid.ones((3,), braid.float64)
        self.assertTrue(braid.equal(braid.add_rms_norm(x, None, None, 1e-5).y, braid.rms_norm(x, ones, 1e-5)))
        self.assertRaises(TypeError, braid.matmul, x, None)


if __name__ == "__main__":
    unittest.main()
