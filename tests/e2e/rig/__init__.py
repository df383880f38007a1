"""The rig of the end-to-end tests: a cluster, images in it, and ways to ask and to wait.

From the bottom: `options` (what the environment says), `commands` (programs with a deadline),
`machine` (engine, tools and public images, pulled or made here), `cluster` (one that answers),
`kind` (makes, reuses and deletes one), `images` (builds and loads ours), `waiting`, `dump`.
"""
