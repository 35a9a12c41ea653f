/**
 * Returns a copy of a text. A part of a string keeps the memory of the whole string, which may be an event of 16 million
 * characters. What outlives its event is therefore copied.
 */
export const detached = (text: string): string => Buffer.from(text, "utf16le").toString("utf16le")
