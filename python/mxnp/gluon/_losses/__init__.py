"""The losses by what they compare; `mxnp.gluon.loss` lists them."""
