import type { ConsumeOptions, Field } from "../../src/services/Broker.ts"

const isOffset = (offset: Field): boolean => {
  if (typeof offset === "string") return /^(first|last|next|\d+[YMDhms])$/.test(offset)
  if (typeof offset === "number") return Number.isSafeInteger(offset) && offset >= 0
  if (typeof offset === "bigint") return offset >= 0n && offset < 2n ** 63n
  return offset instanceof Date && offset.getTime() >= 0
}

/** What would cost the connection. */
export const problemOf = ({
  arguments: fields,
  prefetch
}: Pick<ConsumeOptions, "arguments"> & { readonly prefetch: number }): string | undefined => {
  if (!Number.isInteger(prefetch) || prefetch < 1 || prefetch > 65_535) {
    return `prefetch is ${prefetch}: it can be 1 to 65535`
  }
  const offset = fields?.["x-stream-offset"]
  if (offset === undefined || isOffset(offset)) return undefined
  return `x-stream-offset is ${String(offset)}: it can be first, last, next, an offset, a time, or a time span such as 1h`
}
