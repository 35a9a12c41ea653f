import type { Headers } from "effect/http"

/** Below this path, the portal has its pages. */
export const portalPath = "/admin-ui/"

/** Below this path, files have names that change with their content. */
export const assetsPath = `${portalPath}assets/`

/** Below this path, the control listener serves the upstream's web interface. */
export const upstreamUiPath = `${portalPath}upstream-ui`

/** What is below `/admin-ui/` and not the portal's, whoever asks. */
const others = new Set([
  ...["admin", "v1", "session", "live", "find", "upstream-ui", "docs", "openapi.json", "assets"],
  ...["healthz", "readyz", "metrics"]
])

interface Request {
  readonly method: string
  readonly url: string
  readonly headers: Headers.Headers
}

/**
 * True if a browser asks for a page of the portal. Only navigations accept `text/html`, so that pages and the API of
 * tasks can share the paths below `/admin-ui/tasks`.
 */
export const isPageRequest = ({ headers, method, url }: Request): boolean => {
  const path = pathOf(url)
  return (
    (method === "GET" || method === "HEAD") &&
    path.startsWith(portalPath) &&
    (path === portalPath || acceptsHtml(headers)) &&
    !others.has(path.slice(portalPath.length).split("/", 1)[0] ?? "")
  )
}

export const pathOf = (url: string): string => url.split("?", 1)[0] ?? ""

const acceptsHtml = (headers: Headers.Headers): boolean => headers["accept"]?.includes("text/html") === true
