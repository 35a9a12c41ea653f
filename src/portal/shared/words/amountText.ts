import { countText, moneyText } from "./format.ts"

/** An amount of a limit: requests, tokens or dollars. */
export const amountText = (amount: number, unit: "requests" | "tokens" | "usd"): string =>
  unit === "usd" ? moneyText(amount) : countText(amount)
