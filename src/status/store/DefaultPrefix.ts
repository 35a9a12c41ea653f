/** Key prefix of statuses and dead letters, after the deployment's own. Workers, hubs and routes must share it. */
export const defaultPrefix = "svc"
