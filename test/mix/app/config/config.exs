import Config

config :tessera,
  add_backend_on_inspect: false,
  clients: [host: [platform: :host], other: [platform: :host, device_count: 2, default_device_id: 1]],
  default_client: :other,
  clusters: [ranks: [ranks: 2, mpirun: :none, threads: 1, env: [user_value: "7"]]]
