import type { Redis } from "../../services/Redis.ts"
import type { ScopeMeters } from "./Meters.ts"

export const redisKeysOf = (redis: Redis["Service"], { meters, scope }: ScopeMeters) => ({
  open: redis.key(`limits:open:${scope.id}`),
  known: redis.key(`limits:known:${scope.id}`),
  counters: meters.map(({ key }) => redis.key(key))
})
