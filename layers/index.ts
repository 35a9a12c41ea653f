/** Drivers and in-memory models for the task-messaging library, whose API is `src/messaging/index.ts`. */
export * as BrokerAmqp from "./BrokerAmqp.ts"
export * as BrokerMemory from "./BrokerMemory.ts"
export * as RedisIoredis from "./RedisIoredis.ts"
export * as RedisMemory from "./RedisMemory.ts"
export * as Teardown from "./Teardown.ts"
