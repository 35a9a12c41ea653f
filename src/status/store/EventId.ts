import { createHash } from "node:crypto"

/**
 * Hashes the JSON of the id. As UTF-8, all ids with unpaired surrogates would be equal, but JSON escapes surrogates.
 */
export const hashOf = (eventId: string): string => createHash("sha256").update(JSON.stringify(eventId)).digest("hex")
