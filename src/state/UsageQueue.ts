/** The list in Redis that usage records wait in for the database, oldest first. */
export const usageQueue = "usage:queue"
