/**
 * The test kit for people who write task handlers. `HandlerCheck` runs a worker under every crash, duplicate and
 * redelivery in virtual time. `BrokerMemory` and `RedisMemory` are for tests of your own: `BrokerMemory.makeServer`
 * makes a server whose connections a test can cut, freeze and block. The kit needs no test framework.
 */
export * as BrokerMemory from "../BrokerMemory.ts"
export * as RedisMemory from "../RedisMemory.ts"
export * as HandlerCheck from "./HandlerCheck.ts"
export { StepFailed, type StepOptions, step } from "./Step.ts"
