import Config

# Tensors are allocated by Tessera, and `defn` functions are compiled by it.
config :nx, default_backend: Tessera.Backend
config :nx, default_defn_options: [compiler: Tessera]
