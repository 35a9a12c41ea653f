/** The drivers of the task-messaging library and their in-memory models. `src/messaging/index.ts` uses them. */
export * as BrokerAmqp from "./BrokerAmqp.ts"
export * as BrokerMemory from "./BrokerMemory.ts"
export * as RedisIoredis from "./RedisIoredis.ts"
export * as RedisMemory from "./RedisMemory.ts"
export * as Teardown from "./Teardown.ts"
