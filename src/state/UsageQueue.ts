/** The Redis list of usage records that wait for the database, oldest first. */
export const usageQueue = "usage:queue"
