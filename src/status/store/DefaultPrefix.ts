/**
 * The default key prefix of statuses and dead letters, after the deployment's own prefix. Workers, hubs and HTTP routes
 * of one deployment must use the same prefix.
 */
export const defaultPrefix = "svc"
