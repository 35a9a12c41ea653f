/**
 * Of the keys of statuses and dead letters, behind that of the deployment, where a program says nothing: workers, hubs and
 * routers meet under it.
 */
export const defaultPrefix = "svc"
