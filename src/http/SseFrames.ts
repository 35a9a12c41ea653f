export const keepalive = ": keepalive\n\n"

/** The reconnect delay differs per client, so that thousands of clients do not reconnect at the same time. */
export const shutdownNotice = (retryMs: number): string =>
  `retry: ${retryMs}\n: the server is going down; reconnect with the id of the last event\n\n`

/** The range of the reconnect delay that clients receive at shutdown, in milliseconds. */
export const reconnectMs = [500, 3_000] as const

/** Formats a server-sent event. `json` must not contain line breaks. */
export const event = (name: string, json: string, id?: string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${name}\ndata: ${json}\n\n`
