import { createHash } from "node:crypto"

/**
 * Stands in for an event id that cannot be stored or sent as it is. JSON escapes unpaired surrogates, which UTF-8 would
 * make equal.
 */
export const hashOf = (eventId: string): string => createHash("sha256").update(JSON.stringify(eventId)).digest("hex")
