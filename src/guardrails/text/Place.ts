/** Where text stands for people or models. The tests have an example of each place on each route. */
export const textPlaces = [
  "message content",
  "system prompt",
  "prompt",
  "refusal",
  "reasoning",
  "tool arguments",
  "code",
  "tool result",
  "tool definition",
  "output format",
  "document",
  "file name",
  "citation",
  "audio transcript",
  "embedding input",
  "participant name",
  "user",
  "metadata",
  "member name",
  "stop sequence",
  "error message",
  "compaction summary",
  "other text"
] as const

/** Content that no detector can read: bytes, files behind an address or an id, and text split into scored tokens. */
export const unreadablePlaces = ["picture", "audio", "file", "token probabilities"] as const

export type TextPlace = (typeof textPlaces)[number]
export type UnreadablePlace = (typeof unreadablePlaces)[number]
export type Place = TextPlace | UnreadablePlace

/** How a text is written: as it is, or as JSON inside a JSON string, as in the arguments of a tool call. */
export type Writing = "plain" | "json"

/** The routes that differ in where text stands. `messages` also covers the counting of tokens. */
export const textRoutes = [
  "chat",
  "completions",
  "responses",
  "messages",
  "message_batches",
  "embeddings",
  "other"
] as const
export type TextRoute = (typeof textRoutes)[number]
