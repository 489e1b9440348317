"""A function of JAX arrays, compiled with its parameters inside."""

import jax
import jax.numpy as jnp

import morello_mlir.frontends.jax as frontend


def classify(parameters, x):
    hidden = jax.nn.relu(x @ parameters["w"] + parameters["b"])
    return {"probabilities": jax.nn.softmax(hidden, -1), "best": jnp.argmax(hidden, -1)}


keys = jax.random.split(jax.random.key(0), 2)
parameters = {"w": jax.random.normal(keys[0], (96, 48)), "b": jnp.linspace(-1, 1, 48)}
x = jax.random.normal(keys[1], (20, 96))

compiled = frontend.compile(classify, parameters, x, constant_argnums=0, threads=1)
got, wanted = compiled(x), classify(parameters, x)
assert jnp.allclose(got["probabilities"], wanted["probabilities"], atol=1e-5)
assert (got["best"] == wanted["best"]).all()
print(f"{compiled.compiled.lifted} ops searched for, {compiled.compiled.left} left to upstream: right")
