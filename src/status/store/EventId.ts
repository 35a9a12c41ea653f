import { createHash } from "node:crypto"

/**
 * Replaces an event id that cannot be stored or sent as it is. The hash is over the id's JSON, which escapes unpaired
 * surrogates; in UTF-8 they would all become the same bytes.
 */
export const hashOf = (eventId: string): string => createHash("sha256").update(JSON.stringify(eventId)).digest("hex")
