/**
 * The doors: the interfaces of the program to the outside world. Their variants are modules of their own, such as
 * `svc-runtime/layers/BrokerAmqp`.
 */
export * as Broker from "./Broker.ts"
export * as Database from "./Database.ts"
export * as Egress from "./Egress.ts"
export * as Redis from "./Redis.ts"
export * as Upstream from "./Upstream.ts"
