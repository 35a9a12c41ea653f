import { upstreamUiPath } from "../http/PortalPaths.ts"

/**
 * The web interface requests paths with these first segments from the root of the upstream's host. Every other path is
 * requested below `/ui`.
 */
const rootSegments = [
  ...["upstream-asset-prefix", "upstream", "v1", "v2", "v3", "get_image", "get", "public", "config", "health", "key"],
  ...["in_product_nudges", "model", "model_group", "models", "organization", "policies", "project", "prompts", "sso"],
  ...["tag", "team", "user"]
]

export interface UpstreamUiPaths {
  /** Returns the path and query to request from the upstream, or `undefined` if `target` is not allowed. */
  readonly upstreamTarget: (target: string) => string | undefined
  /**
   * Translates the `Location` of a redirect. Addresses of the upstream get the prefix. Returns `undefined` for paths
   * that cannot be requested here and for addresses of the control listener (`host`). `origin` and `target` belong to
   * the request that was sent to the upstream.
   */
  readonly location: (
    link: string,
    request: { readonly origin: string; readonly target: string; readonly host: string | undefined }
  ) => string | undefined
}

/** `UPSTREAM_UI_PATHS` adds `extraRoots` to `rootSegments`. */
export const make = (extraRoots: ReadonlyArray<string>): UpstreamUiPaths => {
  const rootNames: ReadonlySet<string> = new Set([...rootSegments, ...extraRoots.map(firstSegment)])

  const withPrefix = (path: string): string | undefined => {
    if (isUi.test(path)) return upstreamUiPath + path.replace(isUi, "")
    return rootNames.has(firstSegment(path.split(/[?#]/, 1)[0] ?? "")) ? upstreamUiPath + path : undefined
  }

  return {
    upstreamTarget: (target) => {
      const queryStart = target.indexOf("?")
      const path = queryStart === -1 ? target : target.slice(0, queryStart)
      const query = queryStart === -1 ? "" : target.slice(queryStart)
      if (ambiguousPath.test(path)) return undefined
      if (path === upstreamUiPath) return `/ui${query}`
      if (!path.startsWith(`${upstreamUiPath}/`)) return undefined
      const rest = path.slice(upstreamUiPath.length)
      return (rootNames.has(firstSegment(rest)) ? rest : `/ui${rest}`) + query
    },
    location: (link, { host, origin, target }) => {
      if (!URL.canParse(link, origin + target)) return undefined
      const url = new URL(link, origin + target)
      if (url.origin === origin) return withPrefix(url.pathname + url.search + url.hash)
      return /^https?:$/.test(url.protocol) && url.host !== host ? url.href : undefined
    }
  }
}

const firstSegment = (path: string): string => path.slice(1).split("/", 1)[0] ?? ""

/** Servers interpret such paths differently. The upstream could serve a resource that the gateway would refuse. */
const ambiguousPath = /[\\#;]|\/\/|\/\.{1,2}(?:\/|$)|%(?:2e|2f|5c|25|00)/i

const isUi = /^\/ui(?=[/?#]|$)/
