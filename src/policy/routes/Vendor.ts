import { Schema } from "effect"
import type { Family } from "./CanonicalRoute.ts"
import type { ServedFamilies } from "./StartupUpstreams.ts"

/** Operators call the protocol families by the names of these vendors. */
export const Vendor = Schema.Literals(["openai", "anthropic"])
export type Vendor = typeof Vendor.Type
export const isVendor = Schema.is(Vendor)

const families: Readonly<Record<Vendor, Family>> = { openai: "a", anthropic: "b" }

export const familyOfVendor = (vendor: Vendor): Family => families[vendor]

export const vendorOf = (family: Family): Vendor => (family === "a" ? "openai" : "anthropic")

export const servedFamilies = (vendor: Vendor | null): ServedFamilies => (vendor === null ? "both" : families[vendor])
