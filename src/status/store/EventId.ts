import { createHash } from "node:crypto"

/** Hashes the JSON of an event id, because JSON escapes unpaired surrogates. In UTF-8 they would all be equal. */
export const hashOf = (eventId: string): string => createHash("sha256").update(JSON.stringify(eventId)).digest("hex")
