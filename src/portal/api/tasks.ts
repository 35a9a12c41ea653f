import { parseExact } from "./exactJson.ts"
import { type QueryValue, send, withQuery } from "./http.ts"

/** Status, dead letters and graphs have their routes below this path of the control listener. */
export const tasksPath = "/admin-ui/tasks"

interface Asked {
  readonly query?: Readonly<Record<string, QueryValue>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Calls the API of tasks. `path` begins with a slash. The caller names the type of the response. */
export const callTasks = async <Body>(method: string, path: string, { query, ...sent }: Asked = {}): Promise<Body> => {
  const response = await send(method, withQuery(tasksPath + path, query), sent)
  return parseExact((await response.text()) || "null")
}

/** Puts ids into a path: they may have slashes, and any other character. */
export const taskPath = (parts: TemplateStringsArray, ...ids: ReadonlyArray<string>): string =>
  String.raw({ raw: parts }, ...ids.map(encodeURIComponent))
