import { createHash } from "node:crypto"

/** Hashes the JSON of the id, which escapes unpaired surrogates; in UTF-8 they would all be equal. */
export const hashOf = (eventId: string): string => createHash("sha256").update(JSON.stringify(eventId)).digest("hex")
