import { useSearch } from "@tanstack/react-router"

/** Whether times are shown in UTC. Else they are those of the clock of the browser. */
export const useUtc = (): boolean => useSearch({ strict: false, select: ({ utc = false }) => utc })
