/** The prefix of the keys of statuses and dead letters. Workers, hubs and routes must have the same one. */
export const defaultPrefix = "svc"
