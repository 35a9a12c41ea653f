import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type AddressKind, refusedKind } from "../../layers/http/AddressRule.ts"

type Quad = readonly [number, number, number, number]
const byte = fc.integer({ min: 0, max: 255 })
const quad = fc.tuple(byte, byte, byte, byte)
const dotted = (bytes: Quad) => bytes.join(".")
const hex = ([a, b, c, d]: Quad) => [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(":")

/** The ways in which IPv6 writes an IPv4 address. */
const disguises = (bytes: Quad) => [
  `::ffff:${dotted(bytes)}`,
  `::FFFF:${hex(bytes).toUpperCase()}`,
  `0:0:0:0:0:ffff:${hex(bytes)}`,
  `::ffff:0:${dotted(bytes)}`,
  `64:ff9b::${dotted(bytes)}`,
  `2002:${hex(bytes)}::`,
  `2002:${hex(bytes)}:1:2:3:4:5`
]

/** By NAT64 with a prefix for local use. Whatever else it leads to is private. */
const locally = (bytes: Quad) => [
  `64:ff9b:1::${dotted(bytes)}`,
  `64:ff9b:1::${hex(bytes)}`,
  `64:ff9b:1:abcd::${hex(bytes)}`,
  `64:ff9b:1:1:2:3:${hex(bytes)}`
]

describe("addressRule", () => {
  const always: ReadonlyArray<readonly [AddressKind, ReadonlyArray<string>]> = [
    ["cloud metadata", ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"]],
    ["link-local", ["169.254.0.1", "169.254.255.255", "fe80::1", "febf::1", "fe80::1%eth0"]],
    ["unspecified", ["0.0.0.0", "0.255.1.2", "::", "0:0:0:0:0:0:0:0"]],
    ["broadcast", ["255.255.255.255"]],
    ["multicast", ["224.0.0.1", "239.255.255.255", "ff02::1"]],
    ["tunnel", ["2001:0:53aa:64c::1"]],
    ["not an address", ["", "localhost", "127.1", "0x7f000001", "2130706433", "[::1]", "1.2.3.4.5", "::g"]]
  ]
  for (const [kind, addresses] of always) {
    it(`always refuses what is ${kind}`, () => {
      for (const address of addresses) {
        assert.strictEqual(refusedKind(address, "allow"), kind, address)
        assert.strictEqual(refusedKind(address, "refuse"), kind, address)
      }
    })
  }

  it("leaves loopback and private addresses to the setting", () => {
    const kinds = {
      loopback: ["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"],
      private: [
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "198.18.0.1",
        "240.0.0.1",
        "fd12::1",
        "2001:db8::1"
      ]
    }
    for (const [kind, addresses] of Object.entries(kinds)) {
      for (const address of addresses) {
        assert.isUndefined(refusedKind(address, "allow"), address)
        assert.strictEqual(refusedKind(address, "refuse"), kind, address)
      }
    }
  })

  it("never refuses what is public", () => {
    const open = [
      "1.1.1.1",
      "9.255.255.255",
      "11.0.0.0",
      "172.15.255.255",
      "172.32.0.0",
      "192.169.0.0",
      "223.255.255.255"
    ]
    for (const address of [...open, "2606:4700:4700::1111", "2a00:1450::1", "64:ff9b::1.1.1.1"]) {
      assert.isUndefined(refusedKind(address, "refuse"), address)
    }
  })

  it("says of every disguise of an IPv4 address what it says of the address", () => {
    fc.assert(
      fc.property(quad, fc.constantFrom("allow" as const, "refuse" as const), (bytes, setting) => {
        const expected = refusedKind(dotted(bytes), setting)
        for (const disguise of disguises(bytes)) assert.strictEqual(refusedKind(disguise, setting), expected, disguise)
      }),
      { numRuns: 2_000 }
    )
  })

  it("refuses what is always refused behind a local prefix of NAT64, too", () => {
    fc.assert(
      fc.property(quad, (bytes) => {
        const expected = refusedKind(dotted(bytes), "allow")
        for (const disguise of locally(bytes)) {
          assert.strictEqual(refusedKind(disguise, "allow"), expected, disguise)
          assert.strictEqual(refusedKind(disguise, "refuse"), expected ?? "private", disguise)
        }
      }),
      { examples: [[[169, 254, 169, 254]], [[0, 0, 0, 0]], [[0, 0, 1, 0]], [[10, 1, 2, 3]]], numRuns: 2_000 }
    )
  })

  it("what is refused where private addresses are called is refused where they are not", () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string())
    fc.assert(
      fc.property(address, (text) => {
        const [open, closed] = [refusedKind(text, "allow"), refusedKind(text, "refuse")]
        assert.isTrue(open === undefined || open === closed, `${text}: ${open}, ${closed}`)
      })
    )
  })

  it("finds every host of a link-local or metadata range, wherever in the range it is", () => {
    fc.assert(
      fc.property(byte, byte, (c, d) => {
        for (const text of [dotted([169, 254, c, d]), ...disguises([169, 254, c, d])]) {
          assert.include(["link-local", "cloud metadata"], refusedKind(text, "allow"))
        }
      })
    )
  })
})
