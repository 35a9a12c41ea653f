/**
 * What a hostile connection does, again and again:
 *
 * - `trickle` begins a body and sends a byte of it now and then;
 * - `chunks` sends a megabyte in one-byte chunks, and no end;
 * - `nested` sends JSON that nests as deep as fits;
 * - `form` sends a form of very many fields;
 * - `silent` asks for an answer that does not come;
 * - `unread` asks for streams and reads nothing of them.
 */
export const attackNames = ["trickle", "chunks", "nested", "form", "silent", "unread"] as const
export type AttackName = (typeof attackNames)[number]
