import { Effect, Option, Redacted } from "effect"
import type { StartLink } from "../../src/control/sign-in/StartLink.ts"
import { startLinkPath } from "../../src/control/sign-in/StartLinkRoutes.ts"
import { hostnameOf, isLoopback } from "../../src/http/RequestHost.ts"
import type { Settings } from "../Environment.ts"
import * as Startup from "../Startup.ts"

/** Logs and service managers must not get a link that signs in. */
export const isInTerminal = (): boolean => process.stdout.isTTY

/** Prints the link. Browsers keep sessions at https and on this machine alone, so that other addresses have none. */
export const print = Effect.fnUntraced(function* (
  link: Option.Option<StartLink["Service"]>,
  bound: string,
  { controlOrigin }: Settings
) {
  const local = bound.replace(/^http:\/\/(?:0\.0\.0\.0|\[::\])(?=:|$)/, "http://127.0.0.1")
  const origin = Option.orElse(controlOrigin, () =>
    isLoopback(hostnameOf(local)) ? Option.some(local) : Option.none()
  )
  if (Option.isNone(link) || Option.isNone(origin)) return
  const code = Redacted.value(yield* link.value.begin)
  yield* Startup.announceListener("sign in", `${origin.value}${startLinkPath}?code=${code}`)
  yield* Startup.announceListener("", "the link signs in with all rights: once, within a minute")
})
