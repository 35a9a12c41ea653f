/** The default prefix of the Redis keys of statuses and dead letters. Workers, hubs and routes must share a prefix. */
export const defaultPrefix = "svc"
