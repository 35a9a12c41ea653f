import { Context, Effect, Layer, Option, Redacted, Struct } from "effect"
import { UpstreamUiLink } from "../api/providers/UpstreamUiApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Operator } from "../api/schema/Security.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import type { StoreFailure } from "../store/Rows.ts"
import { openingPath, UpstreamUiOrigin } from "./UpstreamUiOrigin.ts"
import { UpstreamUiSessions } from "./UpstreamUiSessions.ts"

/** Creates links that open the upstream's web interface in a browser. Every link leaves an audit event. */
export class UpstreamUiLinks extends Context.Service<
  UpstreamUiLinks,
  {
    readonly open: Effect.Effect<UpstreamUiLink, Refused<"upstream_ui_unconfigured"> | StoreFailure, Actor>
  }
>()("svc/control/UpstreamUiLinks") {
  static readonly layer = Layer.suspend(() => Layer.effect(UpstreamUiLinks, make))
}

const make = Effect.gen(function* () {
  const sessions = yield* UpstreamUiSessions
  const origin = yield* UpstreamUiOrigin
  const audit = yield* Audit

  const open = Effect.fn("UpstreamUiLinks.open")(function* () {
    if (Option.isNone(origin)) return yield* unconfigured
    const { tokenId } = yield* Operator
    if (tokenId === null) return yield* Effect.die("the operator of this HTTP request has no token id")
    return yield* audit.mutate(function* () {
      const { expiresAt, value } = yield* sessions.createCode(tokenId)
      const link: UpstreamUiLink = {
        url: Redacted.make(`${origin.value}${openingPath}?code=${Redacted.value(value)}`),
        expires_at: expiresAt
      }
      return {
        result: link,
        auditAction: { target: "upstream_ui", action: "providers:upstream_ui_open" },
        targetId: origin.value,
        snapshots: yield* snapshots(null, link),
        changes: []
      }
    })
  })

  return UpstreamUiLinks.of({ open: open() })
})

/** Audit events omit the URL, because it contains the code that starts a session. */
const snapshots = Snapshots.of(UpstreamUiLink.mapFields(Struct.omit(["url"])))

const unconfigured = new ControlError(
  "upstream_ui_unconfigured",
  "The upstream's UI has no address for browsers: set GATEWAY_UPSTREAM_UI_BIND_ADDR and restart."
)
