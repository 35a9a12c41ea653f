import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  bucketText,
  clockText,
  countText,
  decimalText,
  durationText,
  exactText,
  moneyText,
  relativeText,
  shortCountText,
  tickText,
  weekdayText
} from "../../../src/portal/shared/words/format.ts"
import { fieldText, fieldTime } from "../../../src/portal/shared/words/timeField.ts"

describe("Numbers", () => {
  it("are written as Intl writes them", () => {
    fc.assert(
      fc.property(fc.integer(), fc.nat(3), fc.nat(3), (thousandths, most, spare) => {
        const least = Math.min(most, spare)
        // a whole number of the last digit, so that nothing has to be rounded
        const value = thousandths / 10 ** most
        const written = new Intl.NumberFormat("en-US", { minimumFractionDigits: least, maximumFractionDigits: most })
        assert.strictEqual(decimalText(value, most, least), written.format(value))
      })
    )
  })

  it("are shortened as Intl shortens them", () => {
    const written = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 })
    const counts = fc.oneof(
      fc.integer({ min: -10_000, max: 2_000_000 }),
      fc.maxSafeNat().map((count) => count % 9e14)
    )
    fc.assert(
      fc.property(counts, (count) => {
        assert.strictEqual(shortCountText(count), written.format(count))
      })
    )
    assert.deepStrictEqual([0, 0.25, 999.9, 999_950, 1_150, -1_204].map(shortCountText), [
      "0",
      "0.3",
      "999.9",
      "1M",
      "1.2K",
      "-1.2K"
    ])
  })

  it("have the digits that they need", () => {
    assert.deepStrictEqual([0, 999, 12_304, 1_000_000, -1_204].map(countText), [
      "0",
      "999",
      "12,304",
      "1,000,000",
      "-1,204"
    ])
    assert.deepStrictEqual([0, 0.000042, 0.31, 1_204.4, -2.5, 0.0000001].map(moneyText), [
      "$0",
      "$0.000042",
      "$0.31",
      "$1,204",
      "−$2.50",
      "$0.000001 or less"
    ])
    assert.deepStrictEqual([0.34, 12.4, 1_440, 59_800, 200_000, 7_500_000, 273_600_000].map(durationText), [
      "340 µs",
      "12 ms",
      "1.4 s",
      "60 s",
      "3 min 20 s",
      "2 h 5 min",
      "3 d 4 h"
    ])
    assert.deepStrictEqual(
      [Number.NaN, Number.POSITIVE_INFINITY, 1e22].map((value) => decimalText(value, 1)),
      ["NaN", "Infinity", "1e+22"]
    )
    assert.strictEqual(decimalText(-0.001, 1), "0")
  })
})

describe("Times", () => {
  it("are as far away as a person has set them, also a moment later", () => {
    const [day, now] = [86_400_000, Date.UTC(2026, 10, 30)]
    assert.strictEqual(relativeText(now + 7 * day - 2_000, now), "in 7 d")
    assert.strictEqual(relativeText(now + 6.9 * day, now), "in 6 d")
    assert.strictEqual(relativeText(now - 7 * day + 2_000, now), "6 d ago")
    assert.strictEqual(relativeText(now + 1_500, now), "in 1.5 s")
    assert.strictEqual(relativeText(now + 500, now), "now")
  })

  it("are written with their year if it is another one", () => {
    const year = new Date().getUTCFullYear()
    assert.strictEqual(clockText(new Date(Date.UTC(year, 5, 6, 7, 8)), true), "6 Jun, 07:08")
    assert.strictEqual(clockText(new Date(Date.UTC(2019, 8, 26, 14, 3)), true), "26 Sep 2019, 14:03")
  })

  it("of charts and fields are those of the zone that is shown", () => {
    const own = process.env["TZ"]
    process.env["TZ"] = "Asia/Kolkata"
    try {
      const year = new Date().getUTCFullYear()
      const at = new Date(Date.UTC(year, 5, 6, 20, 40, 9))
      const texts = (utc: boolean) => [
        tickText(at, 3_600_000, utc),
        bucketText(at, 60_000, utc),
        bucketText(at, 1_000, utc),
        fieldText(at, utc)
      ]
      assert.deepStrictEqual(texts(true), ["20:40", "6 Jun, 20:40", "20:40:09", `${year}-06-06T20:40`])
      assert.deepStrictEqual(texts(false), ["02:10", "7 Jun, 02:10", "02:10:09", `${year}-06-07T02:10`])
      for (const utc of [true, false]) assert.strictEqual(fieldTime(fieldText(at, utc), utc), at.getTime() - 9_000)
      const thursday = new Date("2026-11-26T20:00:00Z")
      assert.deepStrictEqual(
        [true, false].map((utc) => weekdayText(thursday, utc)),
        ["Thursday 20:00", "Friday 01:30"]
      )
      // a day of the records is one of UTC
      assert.strictEqual(bucketText(at, 86_400_000, false), "6 Jun")
    } finally {
      if (own === undefined) delete process.env["TZ"]
      else process.env["TZ"] = own
    }
  })

  it.each(["UTC", "America/New_York", "Asia/Kolkata", "America/St_Johns"])(
    "by the clock of %s lie as far from UTC as they say",
    (zone) => {
      const own = process.env["TZ"]
      process.env["TZ"] = zone
      try {
        const turns = ["2026-03-08T06:59:59Z", "2026-03-08T07:00:00Z", "2026-11-01T05:59:59Z", "2026-11-01T06:00:00Z"]
        const zones = turns.map((at) => exactText(new Date(at), false).split(" ").at(-1))
        if (zone === "America/New_York") assert.deepStrictEqual(zones, ["-05:00", "-04:00", "-04:00", "-05:00"])
        fc.assert(
          fc.property(fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }), (at) => {
            const [, day = "", time = "", away = ""] = /^(.+), (\S+) (\S+)$/.exec(exactText(at, false)) ?? []
            const whole = new Date(Math.floor(at.getTime() / 1_000) * 1_000)
            assert.strictEqual(new Date(`${day} ${time} GMT${away.replace(":", "")}`).getTime(), whole.getTime())
          })
        )
      } finally {
        if (own === undefined) delete process.env["TZ"]
        else process.env["TZ"] = own
      }
    }
  )
})
