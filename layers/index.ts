/**
 * The servers and their models in memory, for programs that use the library: beside `src/messaging/index.ts`, which says
 * what is done with them.
 */
export * as BrokerAmqp from "./BrokerAmqp.ts"
export * as BrokerMemory from "./BrokerMemory.ts"
export * as RedisIoredis from "./RedisIoredis.ts"
export * as RedisMemory from "./RedisMemory.ts"
export * as Teardown from "./Teardown.ts"
