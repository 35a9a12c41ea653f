/**
 * The test kit. It needs no test framework.
 *
 * - `HandlerCheck` runs a worker under every crash, duplicate and redelivery in virtual time.
 * - `BrokerMemory` and `RedisMemory` are for tests of your own: `BrokerMemory.makeServer` makes a server whose
 *   connections a test can cut, freeze and block.
 * - `BrokerContract`, `DatabaseContract`, `EgressContract`, `RedisContract` and `UpstreamContract` have the laws that
 *   each variant of a door keeps. `Contract.register` runs them on a variant of your own.
 */
export * as BrokerMemory from "../BrokerMemory.ts"
export * as RedisMemory from "../RedisMemory.ts"
export * as BrokerContract from "./contract/BrokerContract.ts"
export * as Contract from "./contract/Contract.ts"
export * as DatabaseContract from "./contract/DatabaseContract.ts"
export * as EgressContract from "./contract/EgressContract.ts"
export * as RedisContract from "./contract/RedisContract.ts"
export * as UpstreamContract from "./contract/UpstreamContract.ts"
export * as HandlerCheck from "./HandlerCheck.ts"
export { StepFailed, type StepOptions, step } from "./Step.ts"
