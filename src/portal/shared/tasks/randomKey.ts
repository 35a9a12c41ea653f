/** Makes a key by which the server knows that a request is the same one again. */
export const randomKey = (): string =>
  // `randomUUID` exists on secure addresses only
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")
