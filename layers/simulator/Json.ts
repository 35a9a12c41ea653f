/** Request bodies are not validated strictly, because clients may be newer than the simulator. */
export type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

export const objectOf = (value: unknown): Json => (isObject(value) ? value : {})

export const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

export const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

export const parse = (bytes: Uint8Array): Json | undefined => {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
