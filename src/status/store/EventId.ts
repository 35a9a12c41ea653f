import { createHash } from "node:crypto"

/**
 * What an event id goes by where it cannot go as it is. It is the hash of its JSON: that escapes the halves of surrogate
 * pairs, which would all be the same byte sequence in UTF-8.
 */
export const hashOf = (eventId: string): string => createHash("sha256").update(JSON.stringify(eventId)).digest("hex")
