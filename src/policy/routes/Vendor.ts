import { Schema } from "effect"
import type { Family } from "./CanonicalRoute.ts"
import type { ServedFamilies } from "./StartupUpstreams.ts"

/** A family as operators know it: by the vendor whose protocol it is. */
export const Vendor = Schema.Literals(["openai", "anthropic"])
export type Vendor = typeof Vendor.Type
export const isVendor = Schema.is(Vendor)

const families: Readonly<Record<Vendor, Family>> = { openai: "a", anthropic: "b" }

export const familyOfVendor = (vendor: Vendor): Family => families[vendor]

export const vendorOf = (family: Family): Vendor => (family === "a" ? "openai" : "anthropic")

/** What a provider row with this `family` serves. */
export const servedFamilies = (vendor: Vendor | null): ServedFamilies => (vendor === null ? "both" : families[vendor])
