import { afterAll, describe, it } from "vitest"
import * as EgressHttp from "../../layers/EgressHttp.ts"
import { allowPrivateAddresses } from "../../layers/http/AddressPolicy.ts"
import { Contract, EgressContract } from "../../layers/testing/index.ts"

Contract.register(
  EgressContract.suite,
  { name: "http", layer: EgressHttp.layer(allowPrivateAddresses) },
  { afterAll, describe, it }
)
