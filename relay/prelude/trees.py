"""`Tree[A]`: a binary tree with values at its leaves."""

from __future__ import annotations

import relay

A = relay.type_var("A")


@relay.data
class Tree:
    """Leaf(value), or Node(left, right)."""

    class Leaf:
        """One value."""

        value: A

    class Node:
        """Two trees."""

        left: Tree
        right: Tree

    def fold(self, leaf, node):
        """node(..) of the subtrees' folds, leaf(value) at the leaves."""
        match self:
            case Tree.Leaf(value):
                return leaf(value)
            case Tree.Node(left, right):
                return node(left.fold(leaf, node), right.fold(leaf, node))

    def map(self, function):
        """function(value) at each leaf."""
        match self:
            case Tree.Leaf(value):
                return Tree.Leaf(function(value))
            case Tree.Node(left, right):
                return Tree.Node(left.map(function), right.map(function))

    def size(self):
        """The number of leaves, Int32."""
        match self:
            case Tree.Leaf():
                return relay.cast(1, relay.Int32)
            case Tree.Node(left, right):
                return left.size() + right.size()

    def depth(self):
        """The number of nodes on the longest way from the root to a leaf, Int32."""
        match self:
            case Tree.Leaf():
                return relay.cast(0, relay.Int32)
            case Tree.Node(left, right):
                return 1 + relay.maximum(left.depth(), right.depth())
