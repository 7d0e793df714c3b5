"""The fleet: the same protocol between real processes, over a NATS broker.

The machines of `dynavg.protocol` decide, as in the simulation; what lives here only carries: bytes
between processes (`post`, `line`, `chunks`, `control`), models in and out of them (`seat`, `crew`,
`office`), and what real processes need beyond that (a journal, certificates, a broker to try out).
Import the modules you need: some of them want the extra `dynavg[fleet]`.
"""
