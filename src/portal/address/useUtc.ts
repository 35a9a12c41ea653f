import { useSearch } from "@tanstack/react-router"

/** Returns true if times are shown in UTC, and false if they are shown in the time zone of the browser. */
export const useUtc = (): boolean => useSearch({ strict: false, select: ({ utc = false }) => utc })
