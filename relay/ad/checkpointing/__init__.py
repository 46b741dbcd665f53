"""Less memory for derivatives: loops and layers of which parts are computed again."""
