{
  description = "svc-runtime: the same shell everywhere, servers included";

  inputs.nixpkgs.url = "github:nixos/nixpkgs/nixpkgs-unstable";

  outputs =
    { nixpkgs, ... }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forEach = nixpkgs.lib.genAttrs systems;
    in
    {
      devShells = forEach (
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        {
          default = pkgs.mkShell {
            packages = [
              pkgs.nodejs_26
              pkgs.postgresql
              pkgs.redis
              pkgs.rabbitmq-server
            ]
            ++ nixpkgs.lib.optional pkgs.stdenv.hostPlatform.isLinux pkgs.chromium;
          };
        }
      );
    };
}
