/** The Redis list of usage records that are not in the database yet, oldest first. */
export const usageQueue = "usage:queue"
