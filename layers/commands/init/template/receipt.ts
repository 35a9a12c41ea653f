import { Schema } from "effect"

/** What a customer has paid. The listener and the worker both check it. */
export const Receipt = Schema.Struct({
  order: Schema.NonEmptyString,
  to: Schema.NonEmptyString,
  cents: Schema.Int
})
export type Receipt = typeof Receipt.Type

/** An order has one receipt, so an order that is sent twice is the same task. */
export const taskIdOf = ({ order }: Receipt): string => `receipt-${order}`

export const textOf = ({ cents, order }: Receipt): string =>
  `Thank you for order ${order}. You paid ${(cents / 100).toFixed(2)}.`
